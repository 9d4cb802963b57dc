/**
 * The token in an address such as /console#sign-in=lnk_…, taken out of the address before
 * the router reads it. It works once, so it is handed out once.
 */
let token = /^#sign-in=(.+)$/.exec(window.location.hash)?.[1] ?? ''
if (token) window.history.replaceState(null, '', window.location.pathname + window.location.search)

export function takeLink(): string {
  const t = token
  token = ''
  return t
}
