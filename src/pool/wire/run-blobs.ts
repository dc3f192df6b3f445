import type { Blob, SiteFile } from '../../site/contract.ts';
import type { RunSpec } from './wire.ts';

/** The blobs that a run needs at its worker. */
export function blobsOf(spec: RunSpec): Blob[] {
  const image = spec.container?.image;
  const files: (SiteFile | undefined)[] = [
    image?.kind === 'file' ? image.file : undefined,
    spec.executable,
    spec.stdin,
    ...spec.inputs.map((input) => (input.kind === 'file' ? input.file : undefined)),
  ];
  return files.flatMap((file) => (file?.kind === 'blob' ? [file.blob] : []));
}
