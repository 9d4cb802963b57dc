import { Button, Group, NumberInput, Paper, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { QueryView } from '@/shared/states'
import { SettingsPage } from './SettingsPage'
import { useAct } from './useAct'

type Settings = Schemas['Settings']

/** /settings/revenue: how long after a click or an open an order belongs to the message. */
export function RevenueSettings() {
  const may = useMay()
  const settings = useQuery({ queryKey: ['settings'], queryFn: () => data(api.GET('/console/api/v1/settings')), enabled: may('settings:read') })
  return (
    <SettingsPage section="/settings/revenue" title="Revenue">
      <QueryView query={settings} what="the settings">
        {(s) => <Form key={JSON.stringify(s)} saved={s} />}
      </QueryView>
    </SettingsPage>
  )
}

function Form({ saved }: { saved: Settings }) {
  const writes = useMay()('settings:write')
  const before = saved.revenue_attribution ?? { click_hours: 120, open_hours: 24 }
  // A number input that is empty holds ''.
  const [click, setClick] = useState<number | string>(before.click_hours)
  const [open, setOpen] = useState<number | string>(before.open_hours)
  const windows = typeof click === 'number' && typeof open === 'number' ? { click_hours: click, open_hours: open } : undefined
  const [act, busy] = useAct('settings')
  return (
    <form
      onSubmit={(e) => {
        e.preventDefault()
        if (!windows) return
        void act('The windows were not saved', () => data(api.PUT('/console/api/v1/settings', { body: { ...saved, revenue_attribution: windows } })), 'The windows are saved.')
      }}
    >
      <Paper withBorder p="md">
        <Stack>
          <Title order={2} size="h5">
            Attribution of revenue
          </Title>
          <Text size="sm" c="dimmed" maw={620}>
            An order belongs to the newest click or open of a message of a campaign or flow, if it comes within these hours. Orders on record keep what was decided. 0 hours: it does not count.
          </Text>
          <Group align="flex-end">
            <NumberInput label="Hours after a click" min={0} max={720} allowDecimal={false} value={click} onChange={setClick} disabled={!writes} />
            <NumberInput label="Hours after an open" min={0} max={720} allowDecimal={false} value={open} onChange={setOpen} disabled={!writes} />
          </Group>
          {writes && (
            <Group>
              <Button type="submit" loading={busy} disabled={!windows || (windows.click_hours === before.click_hours && windows.open_hours === before.open_hours)}>
                Save windows
              </Button>
            </Group>
          )}
        </Stack>
      </Paper>
    </form>
  )
}
