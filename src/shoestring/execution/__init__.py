"""Who evaluates trials, where, and how many at once.

    crew        what the loop may ask of those who evaluate
    alone       this process, one trial after the other
    threads     this process, several at once
    processes   worker processes of our own (``process`` is one of them, ``worker`` what runs in it, ``channel`` how they talk)
    travel      what goes to another process and comes back
    futures     anything shaped like ``concurrent.futures.Executor``; ``task`` is what is submitted
    on_dask     Dask;  on_ray  Ray: executors that neither rerun nor cache, and that really cancel
    simulated   nobody: a clock that follows the costs, for experiments on tables
    hire        from ``workers=``, ``executor=``, ``timeout=`` and ``threads=`` to one of these
    retrying    failures that are tried again;  signals  Ctrl-C and SIGTERM
"""




