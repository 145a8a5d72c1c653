"""Reports: one file of HTML without network, with figures as inline SVG (extra `brimful[report]`).

`facts` counts, `figures` draws with matplotlib, `html` puts both into a report with Jinja.
"""
