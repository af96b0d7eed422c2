"""The paper's experiments, figure by figure: ``python -m paper``, or ``python -m paper --quick``.

problems.py   what is to be learned, and trials of it
methods.py    who learns it
measures.py   how wrong, and how long
harness.py    units of work: each computed once and kept
results.py    curves from units, slopes from curves, checks of both
figure_1.py … figure_4.py, theorems.py
              a figure each: its curves, what the paper says of them, its picture
page.py       the tables of docs/paper.md
"""
