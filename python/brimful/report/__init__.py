"""Reports: one page without network, with figures as inline SVG (extra `brimful[report]`).

`facts` counts, `figures` draws with matplotlib, `page` puts both into a page with Jinja.
"""
