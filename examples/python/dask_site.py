"""Dask with its workers at a site: each is a job there, followed by Gryphus as any other.

    python3 dask_site.py SITE [WORKERS]

The site's machines must reach this one (a cluster's nodes reach its login node), and have the same Python and distributed.
"""

import socket
import sys

import gryphus
import joblib
from distributed import Client, LocalCluster


def square(n):
    return n * n


def main(site, count):
    host = socket.gethostbyname(socket.gethostname())
    with LocalCluster(n_workers=0, host=host, dashboard_address=None) as cluster, Client(cluster) as client:
        # A worker whose scheduler is gone ends by itself.
        command = ["dask-worker", cluster.scheduler_address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "60"]
        workers = [gryphus.submit(command, site=site, cpus=1, memory="500M", seconds=600, name="dask") for _ in range(count)]
        client.wait_for_workers(count, timeout=300)
        print(sum(client.gather(client.map(square, range(100)))))
        with joblib.parallel_backend("dask"):
            print(sum(joblib.Parallel()(joblib.delayed(square)(n) for n in range(100))))
        client.shutdown()
    gryphus.wait(*workers)
    print("exit statuses:", [job.exit_status for one in workers for job in one.jobs()])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2)
