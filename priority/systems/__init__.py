"""What would the fair-share of other systems say of the same tree? For sites that migrate. Pure.

Forms of other products that differ from Muster's own: Flux, Slurm (classic and fair tree), PBS, Maui, NCI.
"""
