/** How an application sends to a source: what to install, and the code with the address and key of the source. */
export interface Snippet {
  id: string
  label: string
  install?: string
  code: string
  note?: string
}

const person = `{ email: 'ann@example.com', firstName: 'Ann' }`

/** The snippets for a kind of source, the usual one first. docs/sending-events.md has the same code, which a test runs with the real SDKs. */
export function snippets(kind: 'browser' | 'server', origin: string, key: string): Snippet[] {
  const shell: Snippet = {
    id: 'curl',
    label: 'curl',
    code: `curl '${origin}/v1/track' -u '${key}:' -H 'Content-Type: application/json' \\
  -d '{"userId": "user-42", "event": "Product Viewed", "properties": {"sku": "sku-7"}}'`,
    note: 'One call, to see whether it arrives. It answers {"success":true}.',
  }
  if (kind === 'browser') {
    return [
      {
        id: 'analytics-next',
        label: 'Segment for pages',
        install: 'npm install @segment/analytics-next',
        code: `import { AnalyticsBrowser } from '@segment/analytics-next'

const analytics = AnalyticsBrowser.load({
  writeKey: '${key}',
  cdnURL: '${origin}',
})
analytics.page()
analytics.track('Product Viewed', { sku: 'sku-7' })
analytics.identify('user-42', ${person}) // after the sign-in`,
        note: 'Only pages of the allowed origins may send.',
      },
      shell,
    ]
  }
  return [
    {
      id: 'analytics-node',
      label: 'Segment for Node.js',
      install: 'npm install @segment/analytics-node',
      code: `import { Analytics } from '@segment/analytics-node'

const analytics = new Analytics({
  writeKey: '${key}',
  host: '${origin}',
})
analytics.on('error', (error) => console.error(error))
analytics.identify({ userId: 'user-42', traits: ${person} })
analytics.track({ userId: 'user-42', event: 'Product Viewed', properties: { sku: 'sku-7' } })
await analytics.closeAndFlush() // at the end of the program`,
    },
    {
      id: 'analytics-python',
      label: 'Segment for Python',
      install: 'pip install segment-analytics-python',
      code: `import segment.analytics as analytics

analytics.write_key = '${key}'
analytics.host = '${origin}'
analytics.on_error = lambda error, items: print(error)
analytics.identify('user-42', {'email': 'ann@example.com', 'firstName': 'Ann'})
analytics.track('user-42', 'Product Viewed', {'sku': 'sku-7'})
analytics.shutdown()  # at the end of the program`,
    },
    {
      id: 'analytics-go',
      label: 'Segment for Go',
      install: 'go get github.com/segmentio/analytics-go/v3',
      code: `client, err := analytics.NewWithConfig("${key}", analytics.Config{Endpoint: "${origin}"})
if err != nil {
	log.Fatal(err)
}
client.Enqueue(analytics.Identify{
	UserId: "user-42",
	Traits: analytics.NewTraits().SetEmail("ann@example.com").SetFirstName("Ann"),
})
client.Enqueue(analytics.Track{
	UserId:     "user-42",
	Event:      "Product Viewed",
	Properties: analytics.NewProperties().Set("sku", "sku-7"),
})
client.Close() // at the end of the program; a wrong key shows only here`,
    },
    {
      id: 'rudder-node',
      label: 'RudderStack for Node.js',
      install: 'npm install @rudderstack/rudder-sdk-node',
      code: `import Rudder from '@rudderstack/rudder-sdk-node'

const client = new Rudder('${key}', {
  dataPlaneUrl: '${origin}',
  errorHandler: (error) => console.error(error),
})
client.identify({ userId: 'user-42', traits: ${person} })
client.track({ userId: 'user-42', event: 'Product Viewed', properties: { sku: 'sku-7' } })
await client.flush() // at the end of the program`,
      note: 'Keep errorHandler: without it, any request that finally fails ends the application.',
    },
    {
      id: 'rudder-python',
      label: 'RudderStack for Python',
      install: 'pip install rudder-sdk-python',
      code: `import rudderstack.analytics as analytics

analytics.write_key = '${key}'
analytics.dataPlaneUrl = '${origin}'
analytics.on_error = lambda error, items: print(error)
analytics.identify('user-42', {'email': 'ann@example.com', 'firstName': 'Ann'})
analytics.track('user-42', 'Product Viewed', {'sku': 'sku-7'})
analytics.shutdown()  # at the end of the program`,
    },
    {
      id: 'posthog-node',
      label: 'PostHog for Node.js',
      install: 'npm install posthog-node',
      code: `import { PostHog } from 'posthog-node'

const posthog = new PostHog('${key}', { host: '${origin}' })
posthog.on('error', (error) => console.error(error))
posthog.identify({ distinctId: 'user-42', properties: ${person} })
posthog.capture({ distinctId: 'user-42', event: 'Product Viewed', properties: { sku: 'sku-7' } })
await posthog.shutdown() // at the end of the program`,
    },
    shell,
  ]
}

/** Origins that somebody typed: one a line, or with commas or spaces between them. */
export function originsOf(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((o) => o !== ''))]
}
