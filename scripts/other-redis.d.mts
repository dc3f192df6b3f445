export type OtherRedis = 'redis-6' | 'redis-8' | 'valkey-8';
export function needRedis(kind: OtherRedis): string | undefined;
