"""``python -m h2hgcn``, which ``torchrun -m h2hgcn`` needs."""

from h2hgcn.cli import main

main()
