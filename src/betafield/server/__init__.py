"""Live experiments: many people, many devices, one study, and no outcome lost.

app          the application: routes, and the checks before them
running      one process: addresses, tokens, starting and stopping
routes       requests in, calls of a study out
access       authentication of requests
security     hosts, sizes of bodies, requests per second
tokens       owners, runners, viewers
studies      all studies of a server
study        a live study: serialises concurrent requests
state        the state of a study in memory: a function of its rows
definitions  a study as JSON, YAML or Python
points       the points at which a posterior is requested
storage      an SQLite file, or PostgreSQL
committing   writes that arrive together are committed together
tables       the tables, and migrations of older ones
schemas      request bodies
problems     errors (RFC 9457)
metrics      counts and times of requests
logs         one line per request
"""
