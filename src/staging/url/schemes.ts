/** The schemes of `FETCHERS`, for code that must not load them: a submit only checks whether a URL can be valid. */
export const URL_SCHEMES: readonly string[] = ['http', 'https', 'ftp', 'ftps', 'gsiftp'];
