export function provideRedis(_stateDir: string): Promise<string> {
  return Promise.reject(new Error('not yet'));
}
