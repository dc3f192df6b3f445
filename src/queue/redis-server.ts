export function stopServer(_o: { readonly stateDir: string; readonly socketDir?: string }): Promise<boolean> {
  return Promise.resolve(false);
}
