// A small shop whose numbers a story can work out by itself.
const countries = ['DE', 'FR', 'US', 'GB']
const plans = ['free', 'pro', 'team']

/** 60 people. Person i bought i % 5 times for 20, 40, … each; every second one is on a plan, every third viewed something today. */
export function shop(now = Date.now()) {
  const events = []
  const people = []
  const day = 86_400_000
  for (let i = 0; i < 60; i++) {
    const person = { email: `person${i}@example.com`, first_name: ['Ada', 'Ben', 'Cleo', 'Dan', 'Eva', 'Finn'][i % 6], last_name: `Example ${i}`, country: countries[i % 4], plan: i % 2 ? plans[i % 3] : undefined, purchases: [] }
    const user = { email: person.email, external_id: `c-${1000 + i}`, first_name: person.first_name, last_name: person.last_name, geo: { country: person.country }, ...(person.plan && { attributes: { plan: person.plan } }) }
    events.push({ event_type: 'signed_up', user, timestamp: new Date(now - 25 * day).toISOString() })
    for (let j = 0; j < i % 5; j++) {
      const at = now - (j * 7 + 1 + (i % 7)) * day
      const value = 20 * (j + 1)
      person.purchases.push({ at, value })
      events.push({ event_type: 'item_purchased', user: { email: person.email }, properties: { value, category: ['shoes', 'books'][j % 2], order: { currency: 'EUR' } }, timestamp: new Date(at).toISOString() })
    }
    if (i % 3 === 0) events.push({ event_type: 'page_viewed', user: { email: person.email }, properties: { path: `/item/${i}` }, timestamp: new Date(now - 3_600_000).toISOString() })
    people.push(person)
  }
  return { events, people }
}
