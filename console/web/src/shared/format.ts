/** Numbers and instants as people read them, in the zone of the browser. */

const whole = new Intl.NumberFormat('en')
export const count = (n: number) => whole.format(n)
/** 1,234.50; amounts are decimals in text, which a number could round. */
export const amount = (decimal: string) => decimal.replace(/\B(?<!\.\d*)(?=(\d{3})+(?!\d))/g, ',')

/** 0.1234 is 12.3 %; what is not nothing does not look like nothing. */
/** percent writes a share; null is one that the server cannot tell. */
export function percent(share: number | null): string {
  if (share === null) return '–'
  if (share > 0 && share < 0.001) return '< 0.1 %'
  if (share < 1 && share > 0.999) return '> 99.9 %'
  return `${whole.format(Math.round(share * 1000) / 10)} %`
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' })
const full = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' })

/** 23 Nov 2026, 14:03:22 CET */
export const instant = (at: string) => full.format(new Date(at))
/** 14:03:22 */
export const timeOfDay = (at: string) => clock.format(new Date(at))
/** 23 Nov 2026 */
export const date = (at: string) => day.format(new Date(at))

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const units: [Intl.RelativeTimeFormatUnit, number][] = [['year', 31_557_600], ['month', 2_629_800], ['day', 86_400], ['hour', 3600], ['minute', 60], ['second', 1]]

/** 5 minutes ago */
export function ago(at: string, now: number): string {
  const seconds = (new Date(at).getTime() - now) / 1000
  const [unit, size] = units.find(([, s]) => Math.abs(seconds) >= s) ?? ['second', 1]
  return relative.format(Math.trunc(seconds / size), unit)
}

/** Today only the time, else the day too. */
export function short(at: string, now: number): string {
  return day.format(new Date(at)) === day.format(new Date(now)) ? timeOfDay(at) : `${date(at)}, ${timeOfDay(at).slice(0, 5)}`
}
