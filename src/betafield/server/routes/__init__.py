"""The routes: requests in, calls of a study out."""
