"""What all parts of the data agree on."""

UNLABELLED = -1  # the class of a node that has no label
