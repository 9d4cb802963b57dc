/**
 * What a message's frame has before everything else: no picture is loaded, not even the one that counts opens on the
 * server itself, and links open a new window, which the sandbox keeps shut.
 */
const guard = '<meta http-equiv="Content-Security-Policy" content="img-src data:; media-src \'none\'; font-src data:"><base target="_blank">'

/** A message as the document of a frame. It may be a fragment; then it gets the margin that mail programs give it. */
export function frame(html: string): string {
  const open = /<head(\s[^>]*)?>/i.exec(html) ?? /<html(\s[^>]*)?>/i.exec(html)
  if (!open) return `<!doctype html><meta charset="utf-8">${guard}<body style="margin:16px;font-family:system-ui,sans-serif;color:#111">${html}</body>`
  const at = open.index + open[0].length
  return html.slice(0, at) + guard + html.slice(at)
}

/** Whether a message has pictures that its frame does not show. */
export const hasImages = (html: string) => /<img[^>]+src\s*=\s*["']?https?:/i.test(html) || /url\(\s*["']?https?:/i.test(html)
