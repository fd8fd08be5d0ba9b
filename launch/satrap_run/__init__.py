"""The launcher of satrap: Python's standard library only.

arguments   what the user wants, and the help
variables   environment and command line of each process
process     one child: started so that it cannot outlive the launcher, watched, described
output      log files and the merged stream, without ever blocking
node        the processes of one attempt on this node
members     the launchers of several nodes, talking to each other
job         attempts, failures, restarts, the exit status; runs on node 0
main        all of it put together
"""
