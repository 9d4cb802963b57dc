import type { Schemas } from '@/shared/api/client'

export type Form = Schemas['Form']
export type Field = Schemas['FormField']

/** What of a form is edited. */
export type Draft = Pick<Form, 'name' | 'title' | 'text' | 'fields' | 'button' | 'list_ids' | 'consent' | 'double_opt_in' | 'message' | 'redirect_url' | 'published' | 'allowed_origins'>

export function draftOf(f: Form): Draft {
  const { name, title, text, fields, button, list_ids, consent, double_opt_in, message, redirect_url, published, allowed_origins } = f
  return { name, title, text, fields, button, list_ids, consent, double_opt_in, message, redirect_url, published, allowed_origins }
}

const escaped = (text: string) => text.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]!)

const style =
  'body{font:1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}label{display:block;margin:0 0 1rem}label.tick{display:flex;gap:.7rem}input,select{font:inherit;width:100%;box-sizing:border-box;padding:.5rem;border:1px solid #767676;border-radius:.3rem;background:#fff}label.tick input{flex:none;width:1.2rem;height:1.2rem;margin:.15rem 0 0}.text{white-space:pre-line}button{font:inherit;padding:.6rem 1.4rem;border:1px solid #1a56db;border-radius:.4rem;background:#1a56db;color:#fff}'

function fieldOf(f: Field) {
  const label = escaped(f.label)
  if (f.type === 'boolean') return `<label class="tick"><input type="checkbox"><span>${label}</span></label>`
  const optional = f.required ? '' : ' <small>(optional)</small>'
  if (f.type === 'choice') return `<label>${label}${optional}<select><option></option>${(f.options ?? []).map((o) => `<option>${escaped(o)}</option>`).join('')}</select></label>`
  return `<label>${label}${optional}<input type="${f.type === 'date' ? 'date' : 'text'}"></label>`
}

/** The hosted page of a form as it would be with a draft. */
export function pageOf(d: Draft) {
  const consent = d.consent ? `<label class="tick"><input type="checkbox"><span class="text">${escaped(d.consent.text)}</span></label>` : ''
  const text = d.text ? `<p class="text">${escaped(d.text)}</p>` : ''
  return `<!doctype html><html><head><style>${style}</style></head><body><h1>${escaped(d.title)}</h1>${text}${d.fields.map(fieldOf).join('')}${consent}<button type="button">${escaped(d.button)}</button></body></html>`
}

/** The lines of a text, each once and without spaces around. */
export const linesOf = (text: string) => [...new Set(text.split('\n').map((x) => x.trim()))].filter((x) => x !== '')
