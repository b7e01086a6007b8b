"""Execution of trials: the loop, and the executors that evaluate trials in this process, in other processes or on a cluster.

    runner            the loop: ask, evaluate, record, until there is a reason to stop;   simulated  the loop in simulated time
    evaluate          one call of the objective;   confirm  an evaluation of the recommended configuration
    retry             failures that are tried again, and a storage that is unavailable for a while
    executor          the protocol of executors, the serial executor, the result buffer
    threads           an executor with threads
    process_pool      an executor with worker processes;   worker  the program of such a process
    serialization     what is sent to another process and comes back
    orphan_guard      ends child processes if the coordinator is killed
    futures           an executor on top of the user's: ``concurrent.futures``, Dask, Ray, ...
    cluster_executor  the base class of dask_executor and ray_executor
    factory           from ``workers=``, ``executor=``, ``timeout=`` and ``threads=`` to an executor
    signals           Ctrl-C, SIGTERM and SIGHUP
"""
