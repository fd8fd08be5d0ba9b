"""The launcher of satrap: Python's standard library only.

arguments     the command line and the help
variables     environment and command line of each process
process       one child: started so that it cannot outlive the launcher, watched, described
output        log files and the merged stream, without ever blocking
node          the processes of one attempt on this node
members       messages between the launchers of several nodes
store_folder  the folder of a job's stores, and those that killed launchers left
job           attempts, failures, restarts, the exit status; runs on node 0
main          assembles the rest
programs      the commands of the wheel
"""
