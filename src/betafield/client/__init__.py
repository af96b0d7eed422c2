"""A study on a server, used from Python like an `Experiment`.

`study` is the object that users see, `journal` keeps outcomes on disk until the server has them,
and `wire` repeats requests until they are answered.
"""

from betafield.client.study import Study

__all__ = ["Study"]
