// A visit to a shop, sent by one of the SDKs for Node.js:
//
//	node visit.mjs SDK ORIGIN WRITE_KEY NAME CLOCK_MS RETRIES
//
// NAME makes the people of this run other people; CLOCK_MS is how far the clock of the
// application is off; RETRIES is how often the SDK tries again. What the SDK reports as an error is printed as "error: …", and
// "done" at the end. With EVENTS=N in the environment it is N events of 100 people instead of
// a visit.
const [sdk, origin, key, name, clock, retries] = process.argv.slice(2)

if (Number(clock)) {
  const RealDate = Date
  globalThis.Date = class extends RealDate {
    constructor(...args) {
      if (args.length === 0) super(RealDate.now() + Number(clock))
      else super(...args)
    }
    static now() { return RealDate.now() + Number(clock) }
  }
}

const user = `u-${name}`, device = `d-${name}`
const traits = { email: `${name}@shop.example`, firstName: 'Ann', lastName: 'Lee', plan: 'pro', address: { city: 'Berlin', country: 'DE' } }
const order = { total: 79.9, currency: 'EUR', products: ['sku-7'] }
const product = { sku: 'sku-7' }
const error = (e) => console.log('error:', String(e?.reason?.message ?? e?.message ?? e?.code ?? e), String(e?.ctx?.failedDelivery?.()?.reason?.message ?? ''))

// visit makes the calls of a visit, with the application's own time.
function visit(sdk) {
  const timestamp = new Date()
  sdk.page({ anonymousId: device, name: 'Home', properties: { url: 'https://shop.example/' }, timestamp })
  sdk.track({ anonymousId: device, event: 'Product Viewed', properties: product, timestamp })
  sdk.identify({ userId: user, anonymousId: device, traits, timestamp })
  sdk.track({ userId: user, anonymousId: device, event: 'Order Completed', properties: order, timestamp })
  sdk.group({ userId: user, groupId: 'acme', traits: { industry: 'shops' }, timestamp })
  sdk.screen({ userId: user, name: 'Receipt', timestamp })
}

// load makes the calls of EVENTS, and waits now and then until what was sent is stored.
const events = Number(process.env.EVENTS ?? 0)
async function load(send, flush) {
  for (let n = 0; n < events; n++) {
    send(`u-${name}-${n % 100}`, n)
    if (n % 1000 === 999) await flush()
  }
  await flush()
}

switch (sdk) {
  case 'segment': {
    const { Analytics } = await import('@segment/analytics-node')
    const analytics = new Analytics({ writeKey: key, host: origin, maxRetries: Number(retries) })
    analytics.on('error', error)
    if (events) await load((userId, n) => analytics.track({ userId, event: 'Loaded segment', properties: { n } }), () => analytics.flush({ timeout: 600_000 }))
    else visit(analytics)
    await analytics.closeAndFlush()
    break
  }
  case 'rudder': {
    const { default: Module } = await import('@rudderstack/rudder-sdk-node')
    const Rudder = Module.default ?? Module
    // Without errorHandler, any final HTTP error ends the application.
    const rudder = new Rudder(key, { dataPlaneUrl: origin, flushAt: 100, errorHandler: error, gzip: true, axiosRetryConfig: { retries: Number(retries) } })
    const flush = () => new Promise((flushed) => rudder.flush(flushed)).catch(error)
    if (events) await load((userId, n) => rudder.track({ userId, event: 'Loaded rudder', properties: { n } }), flush)
    else visit(rudder)
    await flush()
    break
  }
  case 'posthog': {
    const { PostHog } = await import('posthog-node')
    const posthog = new PostHog(key, { host: origin, fetchRetryCount: Number(retries), fetchRetryDelay: 200, flushAt: 100 })
    posthog.on('error', error)
    if (events) {
      await load((distinctId, n) => posthog.capture({ distinctId, event: 'Loaded posthog', properties: { n } }), () => posthog.flush().catch(error))
      await posthog.shutdown(600_000)
      break
    }
    const timestamp = new Date()
    const properties = (more) => ({ $process_person_profile: false, ...more })
    posthog.capture({ distinctId: device, event: '$pageview', properties: properties({ name: 'Home', $current_url: 'https://shop.example/' }), timestamp })
    posthog.capture({ distinctId: device, event: 'Product Viewed', properties: properties(product), timestamp })
    posthog.capture({ distinctId: user, event: '$identify', properties: { $anon_distinct_id: device, $set: traits }, timestamp })
    posthog.capture({ distinctId: user, event: 'Order Completed', properties: order, timestamp })
    posthog.capture({ distinctId: user, event: 'group identified', properties: { group_id: 'acme', industry: 'shops', $set: { group_id: 'acme' } }, timestamp })
    posthog.capture({ distinctId: user, event: '$screen', properties: { $screen_name: 'Receipt' }, timestamp })
    await posthog.flush().catch(error)
    await posthog.shutdown()
    break
  }
}
console.log('done')
process.exit(0)
