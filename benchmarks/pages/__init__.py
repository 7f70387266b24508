"""How long does every page of the console and of volunteers take, and all that the API shows, with many of all?"""
