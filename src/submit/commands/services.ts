import type { Step } from '../maker.ts';
import { byBytes, tokens } from '../text.ts';

/**
 * `use_oauth_services`: names, each with a handle if there is a `NAME_oauth_permissions_HANDLE` (manual,
 * "use_oauth_services").
 */
export const services: Step = {
  name: 'use_oauth_services',
  run(job) {
    const list = job.param('use_oauth_services', 'UseOAuthServices');
    if (list === undefined) return;
    const wanted = new Map(tokens(list).map((name) => [name.toLowerCase(), name]));
    const plain = new Map(wanted);
    const found = new Map<string, string>();
    for (const { name } of job.scope.macros.all()) {
      const [, service = '', handle = ''] =
        /^(?!MY\.)(.*?)_oauth_(?:permissions|resource|options)(?:_(.*))?$/is.exec(name) ?? [];
      const known = wanted.get(service.toLowerCase());
      if (known === undefined || handle === '') continue;
      plain.delete(service.toLowerCase());
      found.set(`${service}*${handle}`.toLowerCase(), `${known}*${handle}`);
    }
    const names = [...plain, ...found].sort(([a], [b]) => byBytes(a, b)).map(([, name]) => name);
    if (names.length > 0) job.setString('OAuthServicesNeeded', names.join(','));
  },
};
