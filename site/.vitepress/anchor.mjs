/** A heading's anchor, as GitHub makes it: the pages are read there too. */
export function anchor(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .trim()
    .replaceAll(' ', '-');
}
