/** What a first call needs to know. A secret that cannot be read is "". */
export interface Account {
  origin: string
  appId: string
  secret: string
}

export const languages = [
  { key: 'curl', label: 'curl' },
  { key: 'go', label: 'Go' },
  { key: 'node', label: 'Node.js' },
  { key: 'python', label: 'Python' },
  { key: 'browser', label: 'Browser' },
] as const

export type Language = (typeof languages)[number]['key']

/** A program that sends the first event of an account. */
export function snippet(language: Language, { origin, appId, secret }: Account): string {
  const address = `${origin}/api/v1/events`
  switch (language) {
    case 'curl':
      return `${secret ? `export MUSTER_APP_SECRET='${secret}'\n\n` : ''}curl ${address} \\
  -H 'Content-Type: application/json' \\
  -H 'X-App-Id: ${appId}' \\
  -H "X-App-Secret: $MUSTER_APP_SECRET" \\
  -d '{
    "event_type": "signed_up",
    "idempotency_key": "signup-42",
    "user": {"external_id": "42", "email": "ada@example.com", "first_name": "Ada"},
    "properties": {"plan": "pro"}
  }'`
    case 'go':
      return `package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	req, err := http.NewRequest("POST", "${address}", strings.NewReader(\`{
		"event_type": "signed_up",
		"idempotency_key": "signup-42",
		"user": {"external_id": "42", "email": "ada@example.com", "first_name": "Ada"},
		"properties": {"plan": "pro"}
	}\`))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-App-Id", "${appId}")
	req.Header.Set("X-App-Secret", ${secret ? `"${secret}"` : 'os.Getenv("MUSTER_APP_SECRET")'})
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	io.Copy(os.Stdout, res.Body)
	fmt.Println()
}`
    case 'node':
      return `const res = await fetch('${address}', {
  method: 'POST',
  headers: {
    'Content-Type': 'application/json',
    'X-App-Id': '${appId}',
    'X-App-Secret': ${secret ? `'${secret}'` : 'process.env.MUSTER_APP_SECRET'},
  },
  body: JSON.stringify({
    event_type: 'signed_up',
    idempotency_key: 'signup-42',
    user: { external_id: '42', email: 'ada@example.com', first_name: 'Ada' },
    properties: { plan: 'pro' },
  }),
})
console.log(await res.json())`
    case 'python':
      return `import json, ${secret ? '' : 'os, '}urllib.request

event = {
    "event_type": "signed_up",
    "idempotency_key": "signup-42",
    "user": {"external_id": "42", "email": "ada@example.com", "first_name": "Ada"},
    "properties": {"plan": "pro"},
}
request = urllib.request.Request(
    "${address}",
    data=json.dumps(event).encode(),
    headers={
        "Content-Type": "application/json",
        "X-App-Id": "${appId}",
        "X-App-Secret": ${secret ? `"${secret}"` : 'os.environ["MUSTER_APP_SECRET"]'},
    },
)
print(urllib.request.urlopen(request).read().decode())`
    case 'browser':
      return `// In the page. The App Secret must not be in a page: everybody could read it there.
navigator.sendBeacon('/track', JSON.stringify({
  event_type: 'page_viewed',
  properties: { path: location.pathname },
}))

// In your server, which knows who is signed in (Node.js, Express).
app.post('/track', express.json({ type: () => true }), async (req, res) => {
  await fetch('${address}', {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-App-Id': '${appId}',
      'X-App-Secret': ${secret ? `'${secret}'` : 'process.env.MUSTER_APP_SECRET'},
    },
    body: JSON.stringify({ ...req.body, user: { external_id: req.session.userId } }),
  })
  res.sendStatus(204)
})`
  }
}
