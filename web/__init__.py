"""Parts that the console, the API and the volunteers' pages share."""
