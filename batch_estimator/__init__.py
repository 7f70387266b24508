"""When will a batch be complete, how sure is that, and what holds it?"""
