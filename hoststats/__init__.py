"""Who is fast and reliable: ranks every (host, app version) and publishes the cut points requests are judged by."""
