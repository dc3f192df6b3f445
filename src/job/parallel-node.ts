/** What HTCondor's submit writes for `$(Node)`, whose value only each node of a parallel job knows. */
const NODE = /#pArAlLeLnOdE#|#MpInOdE#/g;

/** Whether the text is different for each node of a parallel job. */
export function namesNode(text: string): boolean {
  return text.includes('#pArAlLeLnOdE#') || text.includes('#MpInOdE#');
}

/** The text with `$(Node)` as the number of a node of a parallel job. */
export function withNode(text: string, node: number): string {
  return text.replace(NODE, String(node));
}
