"""How long does a refill of the job array take, whatever waits behind it?"""
