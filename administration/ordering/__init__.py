"""Shows, previews and changes the order of batches, fair shares, grants and limits."""
