"""The commands of satrap, with networks in Python: python -m satrap train job.yaml"""
import sys

from .commands import main

sys.exit(main(sys.argv[1:]))
