use infold_log::Seq;
use infold_wire::Message;
#[derive(Debug, Default)]
pub struct Extract(Vec<(Seq, String)>);
impl Extract {
    pub fn new() -> Extract {
        Extract::default()
    }
    pub fn message(&mut self, seq: Seq, m: &Message<'_>) {
        self.0.push((seq, infold_wire::gist(m, 80)));
        if self.0.len() > 1000 {
            self.0.remove(0);
        }
    }
    pub fn previous(&mut self, _: &str) {}
    pub fn write(&self, budget: u64) -> String {
        let mut o = String::new();
        for (s, t) in &self.0 {
            if o.len() as u64 > budget * 3 {
                break;
            }
            o += &format!("- {t} [{s}]\n");
        }
        o
    }
    pub fn lists(&self, _: u64) -> String {
        String::new()
    }
}
