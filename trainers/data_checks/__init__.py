"""Checks of a data set before a node is paid for it: by the names of its files, and by reading a small part of them.

The package needs only Python's standard library, so the app, the command line and the trainers use the same checks.
`check` in check.py checks a whole data set. The trainers read with the functions of idx.py, image_folder.py, coco.py,
voc.py, boxes_csv.py and cifar.py, which complain in the same words: a trainer stops at the first complaint, and a check
collects all complaints.

kinds.py lists the kinds of data. data.json in a trainer's folder names the kind that the trainer reads.
"""
