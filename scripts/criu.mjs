// CRIU 4 for the tests: Debian 12's CRIU 3 does not know current kernels, so Debian 13's is taken, with the libraries that it
// needs.
import { join } from 'node:path';
import { needPackages, placeOf } from './other-debian.mjs';

const LIBRARIES =
  `libbsd0 libc6 libcompel1 libffi8 libgcc-s1 libgmp10 libgnutls30t64 libhogweed6t64 libidn2-0 libjansson4
  libmd0 libmnl0 libnet1 libnettle8t64 libnftables1 libnftnl11 libnl-3-200 libp11-kit0 libprotobuf-c1 libtasn1-6
  libunistring5 libuuid1 libxtables12`.split(/\s+/);

/** The directory of the program, whether or not it exists yet. */
export function criuPlace() {
  return join(placeOf('criu'), 'usr/sbin');
}

/** Whether it is available; prints why not. */
export function needCriu() {
  return needPackages('criu', 'CRIU', ['criu', ...LIBRARIES]);
}
