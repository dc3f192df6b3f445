import type { Queue, QueueOptions } from './api.ts';

export function open(_options: QueueOptions): Promise<Queue> {
  return Promise.reject(new Error('not yet'));
}
