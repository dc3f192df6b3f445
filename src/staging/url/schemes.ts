/** What `FETCHERS` can reach, for those who must not load them: a submit only looks whether a URL can be right. */
export const URL_SCHEMES: readonly string[] = ['http', 'https', 'ftp', 'ftps', 'gsiftp'];
