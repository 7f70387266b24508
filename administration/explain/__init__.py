"""Why does a host get no work, why does nobody run this, and how did this due date come about?"""
