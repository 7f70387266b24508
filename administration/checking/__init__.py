"""An inspection of the whole project: database and upload folder, apart from the code that writes them."""
