import { execFileSync } from 'node:child_process'
import { createServer } from 'node:http'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { languages, snippet, type Language } from './snippets'

const has = (program: string) => {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`])
    return true
  } catch {
    return false
  }
}

/** Runs a snippet against a server that notes what it gets. */
async function sends(language: Language, secret: string, program: string, file: string) {
  const folder = mkdtempSync(join(tmpdir(), 'snippet-'))
  const got: { id?: unknown; secret?: unknown; path?: string; body?: unknown } = {}
  const server = createServer((req, res) => {
    let body = ''
    req.on('data', (d) => (body += String(d)))
    req.on('end', () => {
      Object.assign(got, { id: req.headers['x-app-id'], secret: req.headers['x-app-secret'], path: req.url, body: JSON.parse(body) })
      res.end('{"success":true}')
    })
  })
  try {
    await new Promise<void>((go) => server.listen(0, '127.0.0.1', go))
    const { port } = server.address() as { port: number }
    writeFileSync(join(folder, file), snippet(language, { origin: `http://127.0.0.1:${port}`, appId: 'app_1', secret }))
    const child = spawn(program, [join(folder, file)], { env: { ...process.env, MUSTER_APP_SECRET: 'from the environment' }, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    child.stdout.on('data', (d) => (said += String(d)))
    child.stderr.on('data', (d) => (said += String(d)))
    expect(await new Promise((go) => child.on('close', go)), said).toBe(0)
    expect(said).toContain('success')
  } finally {
    server.close()
    rmSync(folder, { recursive: true })
  }
  return got
}

test.each([
  ['curl', 'sh', 'first.sh'],
  ['node', 'node', 'first.mjs'],
  ['python', 'python3', 'first.py'],
] as const)('the %s snippet sends the event', async (language, program, file) => {
  if (!has(program) || (language === 'curl' && !has('curl'))) return
  for (const [secret, want] of [['', 'from the environment'], ['sk_1', 'sk_1']] as const) {
    const got = await sends(language, secret, program, file)
    expect(got).toMatchObject({ id: 'app_1', secret: want, path: '/api/v1/events', body: { event_type: 'signed_up', idempotency_key: 'signup-42', user: { external_id: '42' }, properties: { plan: 'pro' } } })
  }
}, 60_000)

test('every snippet holds the ids, and the secret where it is known', () => {
  for (const { key } of languages) {
    const text = snippet(key, { origin: 'https://muster.example', appId: 'app_1', secret: '' })
    expect(text).toContain('https://muster.example/api/v1/events')
    expect(text).toContain('app_1')
    expect(text).toContain('MUSTER_APP_SECRET')
    expect(snippet(key, { origin: 'https://muster.example', appId: 'app_1', secret: 'sk_1' })).toContain('sk_1')
  }
})
