// Modules inside ssh2 1.17, as far as we use them; scripts/vendor.mjs names them too, and so does every tsconfig.json that includes only
// what its files import.

declare module 'ssh2/lib/protocol/kex.js' {
  const kex: {
    /** The lists of algorithms that a side offers, and their packet (RFC 4253, section 7.1). */
    readonly KexInit: new (
      lists: unknown,
    ) => { readonly lists: import('./ssh2-host-certificate.ts').OfferLists };
  };
  export default kex;
}

declare module 'ssh2/lib/protocol/utils.js' {
  const utils: {
    /** Sends a finished packet, or keeps it while keys are being exchanged. */
    readonly sendPacket: (protocol: object, packet: Buffer) => void;
  };
  export default utils;
}
