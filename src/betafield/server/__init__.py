"""Live experiments: many people, many devices, one study, nothing lost.

app          the application: routes, and what is checked before them
running      one process: addresses, tokens, starting and stopping
routes       requests in, calls of a study out
access       who asks
security     hosts, sizes of bodies, requests per second
tokens       owners, runners, viewers
studies      all studies of a server
study        a live study: what people do to it at once, one thing after the other
state        what is known of it in memory: a function of its rows
definitions  a study as JSON, YAML or Python
points       where a posterior is asked for
storage      an SQLite file, or PostgreSQL
committing   writes that arrive together are committed together
tables       the tables, and how older ones become those of today
schemas      what clients send
problems     what went wrong (RFC 9457)
metrics      what a server did
logs         one line per request
"""
