/** A call as a shell command; the key is left for the person to fill in. */
export function curl(method: string, path: string, body?: string): string {
  const quote = (s: string) => `'${s.replaceAll("'", `'\\''`)}'`
  const parts = [`curl ${method === 'GET' ? '' : `-X ${method} `}${quote(window.location.origin + path)}`, `-H "Authorization: Bearer $API_KEY"`]
  if (body !== undefined) parts.push(`-H 'Content-Type: application/json'`, `-d ${quote(body)}`)
  return parts.join(' \\\n  ')
}
