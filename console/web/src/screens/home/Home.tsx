import { SegmentedControl, Stack } from '@mantine/core'
import { useLocalStorage } from '@mantine/hooks'
import { getRouteApi } from '@tanstack/react-router'
import { useMay, useSession } from '@/shared/api/session'
import { Page } from '@/shared/Page'
import { Alarms } from './Alarms'
import { Checklist } from './Checklist'
import { Overview } from './Overview'
import { useFirstSteps } from './useFirstSteps'

/** Days that the numbers can be of. */
const spans = [1, 7, 30]
const route = getRouteApi('/shell/home')

/** /home: the first steps of an account, then its volumes and alarms. */
export function Home() {
  const session = useSession().data
  const may = useMay()
  const search = route.useSearch()
  const days = spans.includes(search.days ?? 0) ? search.days! : 7
  const navigate = route.useNavigate()
  const steps = useFirstSteps()
  const [hidden, hide] = useLocalStorage({ key: `muster-first-steps-${session?.account_id ?? ''}`, defaultValue: false, getInitialValueInEffect: false })
  if (!session) return null
  const started = steps.hasEvents === true
  const showsSteps = steps.hasEvents === false || steps.arrived !== null || (!steps.done && !hidden)
  return (
    <Page
      title="Home"
      actions={
        started && may('analytics:read') ? (
          <SegmentedControl
            size="xs"
            aria-label="Period"
            value={String(days)}
            onChange={(v) => void navigate({ search: (s) => ({ ...s, days: Number(v) }), replace: true })}
            data={[
              { value: '1', label: 'Day' },
              { value: '7', label: 'Week' },
              { value: '30', label: '30 days' },
            ]}
          />
        ) : undefined
      }
    >
      <Stack gap="md">
        {started && <Alarms days={days} />}
        {showsSteps && <Checklist session={session} steps={steps} hide={started ? () => hide(true) : undefined} />}
        {started && <Overview days={days} />}
      </Stack>
    </Page>
  )
}
