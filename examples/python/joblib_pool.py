"""joblib over the pool of Gryphus: scikit-learn and others take it by the name "gryphus".

    python3 joblib_pool.py
"""

from math import sqrt

from gryphus import Executor
from joblib import Parallel, delayed, parallel_backend, register_parallel_backend
from joblib._parallel_backends import ParallelBackendBase


class GryphusBackend(ParallelBackendBase):
    """Calls run in the pool; the executor sends short ones together. `**options` are those of `gryphus.Executor` (cpus, memory, anywhere)."""

    supports_timeout = True

    def __init__(self, cores=8, **options):
        super().__init__()
        self._cores = cores
        self._options = options
        self._executor = None

    def effective_n_jobs(self, n_jobs):
        return self._cores if n_jobs is None or n_jobs < 0 else n_jobs

    def configure(self, n_jobs=1, parallel=None, **_):
        self.parallel = parallel
        # The executor chooses its batches among the calls that it knows.
        parallel.pre_dispatch = "all"
        self._executor = Executor(**self._options)
        return self.effective_n_jobs(n_jobs)

    def apply_async(self, func, callback=None):
        future = self._executor.submit(func)
        future.get = future.result
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def terminate(self):
        self._executor.shutdown()

    def abort_everything(self, ensure_ready=True):
        self._executor.shutdown(wait=False, cancel_futures=True)
        if ensure_ready:
            self._executor = Executor(**self._options)


register_parallel_backend("gryphus", GryphusBackend)

if __name__ == "__main__":
    with parallel_backend("gryphus", n_jobs=4):
        print(sum(Parallel()(delayed(sqrt)(n**2) for n in range(200))))
