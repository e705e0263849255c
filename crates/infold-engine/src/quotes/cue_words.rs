//! The words by which a sentence speaks of the user, in ten languages.

pub const SPEAKERS: &str = "user customer benutzer nutzer anwender benutzerin nutzerin anwenderin benutzers nutzers anwenders kunde kundin utilisateur utilisatrice usuario usuaria utente пользователь пользователя пользователю пользователем пользовательница";
pub const PRONOUNS: &str =
    "he she they er sie il elle ils elles el ella ellos ele ela eles lui lei egli essi он она они";
pub const BETWEEN: &str = "has had have also then explicitly specifically clearly now again later first initially just repeatedly previously further additionally is was would does did didn't doesn't not never really strongly still even finally already hasn't hadn't only always once twice have's next since originally hat hatte habe haben auch dann ausdrucklich nochmals erneut spater zuerst zudem noch wurde a avait aussi ensuite explicitement encore d'abord n pas ne ha habia tambien luego explicitamente despues no tambem depois nao havia ha anche poi esplicitamente non aveva также потом затем явно ещё еще не снова";
pub const MODALS: &str = "may might could can should must will shall konnte sollte peut pourrait devrait puede podria debe pode poderia deve puo potrebbe dovrebbe может должен";
pub const GENERIC: &str = "a an any each every another one no some which end per-user multi ein eine einem einen jeder jede jedem chaque un une aucun cada algun alguno um uma ogni каждый каждого любой любого new normal typical single other";
pub const WHENEVER: &str = "if when whenever whether unless lets let allow allows allowing until so where once how wenn falls ob sobald si quand lorsque cuando quando se если когда than";
pub const NOUNS: &str = "request requests instruction instructions preference preferences wish wishes decision decisions feedback question questions correction corrections requirement requirements goal words approval permission insight suggestion suggestions answer response explanation demand demands order choice concern complaint proposal verification clarification direction directive constraint constraints rule rules quote quotes intent consent agreement confirmation wunsch wunsche anweisung anweisungen bitte vorgabe vorgaben entscheidung frage anforderung anforderungen erlaubnis zustimmung genehmigung demande demandes souhait instruction consigne consignes preference accord autorisation approbation решение просьба просьбе просьбу запрос запросу требование требованию указание указанию пожелание разрешение solicitud peticion preferencia instruccion instrucciones aprobacion permiso decision pedido solicitacao instrucao instrucoes preferencia aprovacao permissao richiesta istruzione istruzioni preferenza approvazione permesso";
pub const BEFORE_NOUN: &str = "per at following with due in against after by on upon under based auf nach gemass laut mit per selon a sur conformement avec segun por con bajo conforme com a secondo su con как по согласно с";
pub const AS_ASKED: [&str; 26] = [
    "as requested",
    "as instructed",
    "as asked",
    "as agreed",
    "as directed",
    "as specified",
    "as demanded",
    "upon request",
    "on request",
    "per request",
    "per instructions",
    "wie gewunscht",
    "wie verlangt",
    "wie gefordert",
    "wie besprochen",
    "auf wunsch",
    "comme demande",
    "comme convenu",
    "a la demande",
    "como se pidio",
    "segun lo solicitado",
    "como solicitado",
    "conforme solicitado",
    "come richiesto",
    "по просьбе",
    "как просили",
];
pub const WAS_ASKED: [&str; 34] = [
    "it was requested",
    "it was asked",
    "it was demanded",
    "it was agreed",
    "it was instructed",
    "it was confirmed that",
    "it has been requested",
    "was asked to",
    "were asked to",
    "was told to",
    "were told to",
    "was instructed to",
    "were instructed to",
    "request was to",
    "request is to",
    "instruction was to",
    "approval was given",
    "permission was granted",
    "permission was given",
    "es wurde gewunscht",
    "es wurde verlangt",
    "es wurde gebeten",
    "wurde gebeten",
    "es wurde vereinbart",
    "il a ete demande",
    "se pidio",
    "se solicito",
    "foi pedido",
    "foi solicitado",
    "e stato chiesto",
    "e stato richiesto",
    "было запрошено",
    "попросили",
    "было решено с",
];
pub const APPROVING: &str = "approved approves allowed allows permitted permits authorized authorised authorizes accepted accepts agreed agrees granted okayed approval permission consent genehmigte genehmigt erlaubte erlaubt zugestimmt stimmte genehmigung erlaubnis zustimmung approuve autorise accepte accord autorisation approbation aprobo autorizo acepto aprobado autorizado aprobacion permiso aprovou autorizou aceitou aprovacao permissao approvato autorizzato accettato approvazione permesso одобрил одобрила разрешил разрешила согласился согласилась разрешение";
pub const REJECTING: &str = "retracted rejected rejects declined declines refused refuses forbade forbids prohibited prohibits banned disagreed dislikes verbot verbietet verboten lehnte abgelehnt interdit refuse prohibio rechazo proibiu rejeitou vietato rifiutato запретил запретила";

pub const WIDE_SPEAKERS: [&str; 7] = [
    "用户",
    "使用者",
    "客户",
    "用戶",
    "ユーザー",
    "ユーザ",
    "사용자",
];
pub const WIDE_PRONOUNS: [&str; 7] = ["他们", "她们", "他", "她", "彼女", "彼", "그는"];
pub const WIDE_VERBS: [&str; 58] = [
    "要求", "请求", "想要", "希望", "说", "表示", "指示", "需要", "同意", "批准", "确认", "允许",
    "决定", "提出", "指出", "建议", "询问", "问", "强调", "偏好", "拒绝", "想", "不想", "反馈",
    "提到", "授权", "喜欢", "選", "依頼", "求め", "言っ", "言い", "述べ", "望ん", "頼ん", "承認",
    "許可", "確認", "決め", "質問", "提案", "好む", "伝え", "指定", "요청", "원한", "원했", "말했",
    "지시", "희망", "승인", "허락", "동의", "질문", "제안", "요구", "부탁", "선호",
];
pub const WIDE_APPROVING: [&str; 10] = [
    "同意", "批准", "允许", "授权", "承認", "許可", "승인", "허락", "동의", "허가",
];
pub const WIDE_AS_ASKED: [&str; 14] = [
    "按要求",
    "按照要求",
    "根据要求",
    "按用户",
    "应用户",
    "根据用户",
    "ご要望",
    "依頼どおり",
    "依頼通り",
    "要望どおり",
    "ご依頼",
    "요청대로",
    "요청에 따라",
    "지시대로",
];
