"""A study on a server, asked and told from Python as an `Experiment` is.

`study` is what people use, `journal` keeps outcomes on disk until the server has them, `wire`
repeats requests until they are answered.
"""

from betafield.client.study import Study

__all__ = ["Study"]
