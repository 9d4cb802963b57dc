// Shows the in-app messages of a signed-in person on a page. One file without dependencies;
// `npm run build` writes it to dist/muster-inapp.js, and the server serves it at
// /in-app/muster-inapp.js. Texts of messages only ever become text nodes.

interface Message {
  id: string
  title: string
  body: string
  image: string | null
  link: string | null
  display: string
  created_at: string
  expires_at: string
  seen_at: string | null
}

interface Options {
  /** Returns the person's token, which the page's own server signs. */
  token: () => string | Promise<string>
  /** Where the inbox is shown: an element, or a selector of one. */
  inbox?: Element | string
  /** Where the service is; otherwise where the script came from. */
  url?: string
  /** Is told how many messages are unseen. */
  onUnseen?: (n: number) => void
}

const styles = `:host{all:initial}
*{box-sizing:border-box;font:15px/1.4 system-ui,sans-serif}
.c{color:#1a1a1a;background:#fff;border:1px solid #d0d0d0;border-radius:8px;padding:14px 44px 14px 16px;position:relative}
.b{position:fixed;z-index:2147483646;inset:auto 16px 16px auto;width:min(360px,calc(100vw - 32px));box-shadow:0 4px 20px #0003}
dialog.c{width:min(440px,calc(100vw - 32px));margin:auto}dialog::backdrop{background:#0006}
ul{list-style:none;margin:0;padding:0;display:grid;gap:8px}.n{border-left:4px solid #2563eb}
h2{font-weight:600;margin:0;overflow-wrap:anywhere}p{margin:4px 0 0;white-space:pre-line;overflow-wrap:anywhere}
img{display:block;max-width:100%;max-height:240px;border-radius:6px;margin-bottom:8px}
a{color:#1d4ed8;display:inline-block;margin-top:8px}
button{position:absolute;top:6px;right:6px;width:32px;height:32px;border:0;border-radius:6px;background:none;color:inherit;font-size:20px;cursor:pointer}
button:focus-visible,a:focus-visible{outline:2px solid #2563eb;outline-offset:2px}
@media(prefers-color-scheme:dark){.c{color:#eee;background:#1f1f1f;border-color:#444}a{color:#93b4ff}}
@media(prefers-reduced-motion:no-preference){.b,dialog[open]{animation:i .2s ease-out}}@keyframes i{from{opacity:0;transform:translateY(8px)}}`

const script = document.currentScript as HTMLScriptElement | null
let end: (() => void) | undefined

function start(options: Options) {
  end?.()
  const base = (options.url ?? (script ? new URL(script.src).origin : '')).replace(/\/$/, '') + '/in-app/'
  const gone = new AbortController()
  const done = new Set<string>() // what the person did, as `id/deed`
  const failed = new Set<string>() // those of done that the service did not take
  let token = ''
  let messages: Message[] = []
  let shown: { id: string; el: Element } | undefined
  let box: ShadowRoot | undefined // where the inbox was drawn last
  let expiry: ReturnType<typeof setTimeout> | undefined
  let stream = new AbortController()
  let wake = () => {}

  async function call(path: string, init: RequestInit = {}, again = true): Promise<Response> {
    if (!token) {
      const text = `${await options.token()}`.trim()
      if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(text)) throw new Error('muster: token() did not return a token')
      token = text
    }
    let r: Response | undefined
    try {
      r = await fetch(base + path, { signal: gone.signal, credentials: 'omit', ...init, headers: { Authorization: 'Bearer ' + token } })
    } finally {
      // A browser may hide why a call failed, so the next call gets another token.
      if (!r || r.status === 401) token = ''
    }
    if (r.status !== 401) return r
    if (!again) throw new Error('muster: the token is refused')
    return call(path, init, false)
  }

  function report(id: string, deed: string) {
    const key = id + '/' + deed
    if (done.has(key)) return
    done.add(key)
    send(key)
  }

  function send(key: string) {
    failed.delete(key)
    // keepalive: a click leads away from the page.
    call('inbox/' + key, { method: 'POST', keepalive: true }).then(
      (r) => r.ok || r.status === 404 || failed.add(key),
      () => failed.add(key),
    )
  }

  function root(host: Element): ShadowRoot {
    const s = host.shadowRoot ?? host.attachShadow({ mode: 'open' })
    if (!s.adoptedStyleSheets.length) {
      const sheet = new CSSStyleSheet()
      sheet.replaceSync(styles)
      s.adoptedStyleSheets = [sheet]
    }
    return s
  }

  function make<K extends keyof HTMLElementTagNameMap>(tag: K, props: Partial<HTMLElementTagNameMap[K]>, ...children: Node[]) {
    const el = Object.assign(document.createElement(tag), props)
    el.append(...children)
    return el
  }

  function safe(link: string | null): string | undefined {
    try {
      const u = new URL(link ?? '')
      return /^(javascript|data|vbscript|file|blob|about):$/.test(u.protocol) ? undefined : u.href
    } catch {
      return undefined
    }
  }

  function parts(m: Message, close: () => void): Node[] {
    const image = safe(m.image)
    const link = safe(m.link)
    const out: Node[] = []
    if (image?.startsWith('https:')) out.push(make('img', { src: image, alt: '', referrerPolicy: 'no-referrer' }))
    out.push(make('h2', { textContent: m.title }))
    if (m.body) out.push(make('p', { textContent: m.body }))
    if (link)
      out.push(
        make('a', {
          href: link,
          rel: 'noopener',
          textContent: document.documentElement.lang.startsWith('de') ? 'Öffnen' : 'Open',
          onclick: () => {
            report(m.id, 'clicked')
            if (shown?.id === m.id) hide()
          },
        }),
      )
    const x = make('button', { type: 'button', textContent: '×', onclick: close })
    x.setAttribute('aria-label', 'Close: ' + m.title)
    out.push(x)
    return out
  }

  function dismiss(m: Message) {
    report(m.id, 'dismissed')
    messages = messages.filter((x) => x.id !== m.id)
    if (shown?.id === m.id) hide()
    draw()
  }

  function hide() {
    // Closing gives the focus back to where it was before the modal; removing alone does not.
    shown?.el.shadowRoot?.querySelector('dialog')?.close()
    shown?.el.remove()
    shown = undefined
  }

  // One banner or modal at a time, the first that was not seen.
  function pop() {
    if (shown && messages.some((m) => m.id === shown!.id)) return
    hide()
    const m = messages.find((x) => x.display !== 'inbox' && !x.seen_at && !done.has(x.id + '/seen'))
    if (!m || document.hidden) return
    const host = document.createElement('div')
    document.body.append(host)
    shown = { id: m.id, el: host }
    const close = () => dismiss(m)
    if (m.display === 'modal') {
      const d = make('dialog', { className: 'c' }, ...parts(m, close))
      d.setAttribute('aria-label', m.title)
      d.oncancel = close
      root(host).append(d)
      d.showModal()
    } else {
      const b = make('section', { className: 'c b' }, ...parts(m, close))
      b.addEventListener('keydown', (e) => e.key === 'Escape' && close())
      b.setAttribute('role', 'status')
      root(host).append(b)
    }
    report(m.id, 'seen')
  }

  const watch = new IntersectionObserver((list) => {
    for (const e of list) if (e.isIntersecting) report((e.target as HTMLElement).dataset.id!, 'seen')
  })

  function draw() {
    if (gone.signal.aborted) return
    const now = Date.now()
    messages = messages.filter((m) => Date.parse(m.expires_at) > now)
    clearTimeout(expiry)
    // A timer of more than 2^31 - 1 ms would run at once.
    expiry = setTimeout(draw, Math.min(2 ** 31 - 1, ...messages.map((m) => Date.parse(m.expires_at) - now)))
    const host = typeof options.inbox === 'string' ? document.querySelector(options.inbox) : options.inbox
    if (host) {
      watch.disconnect()
      const list = make('ul', {})
      for (const m of messages) {
        const li = make('li', { className: m.seen_at ? 'c' : 'c n' }, ...parts(m, () => dismiss(m)))
        li.dataset.id = m.id
        list.append(li)
        if (!m.seen_at) watch.observe(li)
      }
      const s = root(host)
      if (box !== s) box?.replaceChildren()
      box = s
      // The focus stays at its message, or goes to the one in its place.
      const focus = s.activeElement
      const from = focus?.closest('li')
      const at = from ? [...from.parentElement!.children].indexOf(from) : -1
      s.replaceChildren(list)
      if (focus && from) {
        const items = [...list.children] as HTMLElement[]
        const to = items.find((li) => li.dataset.id === from.dataset.id) ?? items[Math.min(at, items.length - 1)]
        to?.querySelector<HTMLElement>(focus.localName)?.focus({ preventScroll: true })
      }
    }
    pop()
  }

  async function refresh() {
    const r = await call('inbox?limit=100')
    if (!r.ok) throw new Error('muster: ' + r.status)
    failed.forEach(send)
    const page = (await r.json()) as { messages: Message[]; unseen: number }
    if (gone.signal.aborted) return
    messages = page.messages.filter((m) => !done.has(m.id + '/dismissed'))
    options.onUnseen?.(page.unseen)
    draw()
  }

  // Browsers open six connections to a host over HTTP/1.1, for all tabs: a hidden page holds none.
  function look() {
    stream.abort()
    if (document.hidden) failed.forEach(send) // the page may be about to unload
    wake()
  }

  async function follow() {
    for (let wait = 1000; !gone.signal.aborted; wait = Math.min(wait * 2, 60000)) {
      let least = 0
      if (!document.hidden) {
        stream = new AbortController()
        try {
          await refresh()
          least = 30000 // without a stream the inbox is read now and then
          const r = await call('stream', { signal: stream.signal })
          if (r.ok && r.body) {
            least = 0
            wait = 1000
            const reader = r.body.pipeThrough(new TextDecoderStream()).getReader()
            let text = ''
            for (let x = await reader.read(); !x.done; x = await reader.read()) {
              text += x.value
              const at = text.lastIndexOf('\n\n')
              if (at < 0) continue
              // The first event is always "unseen", so nothing is missed since the last stream.
              if (/^event: (message|unseen)/m.test(text.slice(0, at))) await refresh()
              text = text.slice(at + 2)
            }
          }
        } catch {
          // The service or the network is away: again later.
        } finally {
          if (stream.signal.aborted) {
            least = 0
            wait = 1000
          }
          stream.abort()
        }
      }
      if (gone.signal.aborted) return
      await new Promise<void>((r) => {
        wake = r
        if (!document.hidden) setTimeout(r, least + wait * (0.5 + Math.random()))
      })
    }
  }

  end = () => {
    end = undefined
    gone.abort()
    stream.abort()
    document.removeEventListener('visibilitychange', look)
    clearTimeout(expiry)
    watch.disconnect()
    hide()
    messages = []
    box?.replaceChildren()
    wake()
    options.onUnseen?.(0)
  }
  document.addEventListener('visibilitychange', look)
  void follow()
}

Object.assign(window, { MusterInApp: { start, stop: () => end?.() } })

export {}
