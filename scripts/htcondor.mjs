// HTCondor for the tests. Debian has included it since the release after bookworm: the package is taken from there,
// with the libraries that
// it needs.
import { join } from 'node:path';
import { needPackages, placeOf } from './other-debian.mjs';

const LIBRARIES = 'libc6 libgcc-s1 libgomp1 libpcre2-8-0 libssl3t64 libstdc++6 libuuid1 libzstd1 zlib1g'.split(' ');

/** Its `usr`, whether or not it exists yet. */
export function htcondorPlace() {
  return join(placeOf('htcondor'), 'usr');
}

/** Whether it is available; prints why not. */
export function needHtcondor() {
  return needPackages('htcondor', 'HTCondor', ['condor', ...LIBRARIES]);
}
